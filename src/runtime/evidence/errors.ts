/** A leaf, tile, note, checkpoint, proof or request that is not of its format. The message says what is wrong. */
export class MalformedEvidenceError extends Error {
  override readonly name = 'MalformedEvidenceError';
}

/** A note without a valid signature of a known key, or with an invalid one. */
export class UntrustedNoteError extends Error {
  override readonly name = 'UntrustedNoteError';
}

/** None of the keys that signed it is known. */
export class UnknownSignersError extends UntrustedNoteError {}

/** An event that the log of a checkpoint does not have as it is shown. */
export class UnprovenEventError extends Error {
  override readonly name = 'UnprovenEventError';
}
