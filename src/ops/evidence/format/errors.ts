/** A leaf, tile, note, checkpoint, proof or request does not have its format. The message names the fault. */
export class MalformedEvidenceError extends Error {
  override readonly name = 'MalformedEvidenceError';
}

/** A note without a valid signature of a known key, or with an invalid one. */
export class UntrustedNoteError extends Error {
  override readonly name = 'UntrustedNoteError';
}

/** A note was signed by unknown keys only. */
export class UnknownSignersError extends UntrustedNoteError {}

/** The log of a checkpoint does not have an event, or not with the content that a bundle shows. */
export class UnprovenEventError extends Error {
  override readonly name = 'UnprovenEventError';
}
