import { UnavailableError } from '../../ports/unavailable.js';

/** What was encrypted was altered, in the log or the key store: it can't be read, nor does a retry help. */
export class AlteredDataError extends UnavailableError {
  constructor(what: string, cause: unknown) {
    super(`${what} can't be decrypted: it was altered`, { cause, publicReason: 'what its disk gives is damaged' });
  }
}

/** `open` unless it fails. @throws AlteredDataError */
export function unaltered<T>(what: () => string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    throw new AlteredDataError(what(), error);
  }
}

/** Without those fields of an event that can't be read. */
export function readableFields(data: object): object {
  const fields = Object.entries(Object.getOwnPropertyDescriptors(data)).filter(([, { get }]) => get === undefined);
  return Object.fromEntries(fields.map(([name, { value }]) => [name, value as unknown]));
}

/**
 * The open fields of an event, and personal ones that throw where they are read. So what does not need them goes on:
 * of a read model, the one document that does is quarantined (docs/design.md#read-models).
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
