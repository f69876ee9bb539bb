import { UnavailableError } from '../../ports/unavailable.js';

/** Encrypted data was altered, in the log or the key store: it can't be read, and a retry does not help. */
export class AlteredDataError extends UnavailableError {
  constructor(what: string, cause: unknown) {
    super(`${what} can't be decrypted: it was altered`, { cause, publicReason: 'what its disk gives is damaged' });
  }
}

/** The result of `open`. @throws AlteredDataError when `open` throws anything */
export function unaltered<T>(what: () => string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new AlteredDataError(what(), error);
  }
}

/** An event's data without the fields that can't be read (see `withFailingFields`). */
export function readableFields(data: object): object {
  const fields = Object.entries(Object.getOwnPropertyDescriptors(data)).filter(([, { get }]) => get === undefined);
  return Object.fromEntries(fields.map(([name, { value }]) => [name, value as unknown]));
}

/**
 * The open fields of an event, and personal ones that throw where they are read. So work that does not need them
 * continues. In a read model only the document that needs them is quarantined (docs/design.md#read-models).
 */
export function withFailingFields(data: object, fields: readonly string[], error: UnavailableError): object {
  const fail = (): never => {
    throw error;
  };
  return Object.defineProperties(
    { ...data },
    Object.fromEntries(fields.map((field) => [field, { enumerable: true, get: fail }])),
  );
}
