/** A rebuild of read models was refused. It would spread a forgery, since the log is not what was signed. */
import type { EventStore } from '../../ports/eventStore.js';
import { MaintenanceRefusedError } from '../../runtime/readmodels/index.js';
import {
  faultInWords,
  firstFault,
  readableLeaves,
  type TileFolder,
  type VerifiersOf,
  verifyLog,
  type VerifyOptions,
} from '../evidence/index.js';

export class AlteredLogRefusedError extends MaintenanceRefusedError {
  override readonly name = 'AlteredLogRefusedError';
}

export interface SignedLog {
  /** The log as stored. */
  readonly stored: Pick<EventStore, 'engine' | 'read' | 'readAll' | 'readTexts' | 'strays'>;
  readonly folder: TileFolder;
  readonly verifiersOf: VerifiersOf;
}

/**
 * Reads the whole log, and checks it against its signed heads.
 * @throws AlteredLogRefusedError; UnavailableError, the signal's reason
 */
export async function refuseAlteredLog(
  { stored, folder, verifiersOf }: SignedLog,
  options: VerifyOptions = {},
): Promise<void> {
  const leaves = await readableLeaves(stored);
  const fault = firstFault(await verifyLog({ stored, leaves, folder, verifiersOf, kept: [] }, options));
  if (fault === undefined || fault.what === 'spoilt tiles') return;
  throw new AlteredLogRefusedError(
    `the log is not what was signed, and would be carried into the read model: ${faultInWords(fault)}`,
  );
}
