import { readStoreContract } from '../../../contract/readStore.js';
import { embeddedFixture } from '../../../support/readStoreEmbedded.js';

readStoreContract('embedded', () => embeddedFixture());
