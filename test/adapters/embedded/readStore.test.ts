import { embeddedFixture } from '../../support/readStoreEmbedded.js';
import { readStoreContract } from '../../contract/readStore.js';

readStoreContract('embedded', () => embeddedFixture());
