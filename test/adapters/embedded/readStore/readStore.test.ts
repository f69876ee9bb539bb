import { readStoreContract } from '../../../contract/readStore.js';
import { embeddedFixture } from '../../../support/engines/readStoreEmbedded.js';

readStoreContract('embedded', () => embeddedFixture());
