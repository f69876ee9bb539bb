/** What other folders may use of the proofs that nothing was altered: only this file is imported from outside. */
export { checkProof } from './format/checkProof.js';
export { cosignatureVerifier } from './format/checkpoint.js';
export { EvidenceError } from './format/parsing.js';
export { BUNDLE_FORMAT } from './format/proofBundle.js';
export { noteVerifier } from './format/signedNote.js';
export { type EvidenceView, evidenceView } from './heads/evidenceView.js';
export { headStatus } from './heads/headStatus.js';
export { verifierKeys } from './heads/signedHeads.js';
export { startTreeKeeper, TREE_PART } from './keeper/treeKeeper.js';
export { proveEvents, readLeafBundle } from './tree/proofs.js';
export { openTileFolder, type TileFolder } from './tree/tileFolder.js';
export { type SignedLog, verifyLog } from './verify/verifyLog.js';
export type { VerifyProgress } from './verify/verifyProgress.js';
export { openWitness, type Witness } from './witness/witness.js';
