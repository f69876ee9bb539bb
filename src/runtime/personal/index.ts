export { AlteredDataError, readableFields } from './alteredData.js';
export { encryptedEvents, type PersonalRules } from './encryptedEvents.js';
export { type MasterKeys, masterKeys, UnknownMasterKeyError } from './masterKeys.js';
export { openText, sealText } from './sealedTexts.js';
export { openSubjects, type Proposal, SECRETS_CACHED_MS, type Subjects } from './subjects.js';
