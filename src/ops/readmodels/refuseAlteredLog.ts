/**
 * Compares the log with its signed heads before a rebuild or a repair, which would spread a forgery if the log is not
 * what was signed.
 */
import { MaintenanceRefusedError } from '../../runtime/readmodels/index.js';
import { EvidenceError, type SignedLog, verifyLog } from '../evidence/index.js';

export class AlteredLogRefusedError extends MaintenanceRefusedError {
  override readonly name = 'AlteredLogRefusedError';
}

/**
 * Reads the whole log, and checks it against its signed heads.
 * @throws AlteredLogRefusedError; UnavailableError, the signal's reason
 */
export async function refuseAlteredLog(
  log: SignedLog,
  options: { readonly signal?: AbortSignal; readonly onProgress?: (events: number) => void } = {},
): Promise<void> {
  const { fault } = await verifyLog(log, options).catch((error: unknown) => {
    // A head in SEAL_DIR is malformed.
    throw error instanceof EvidenceError
      ? new AlteredLogRefusedError(`the log can't be held against what was signed: ${error.message}`)
      : error;
  });
  if (fault === undefined || fault.what === 'corrupted tiles') return;
  if (fault.what === 'unknown signer')
    throw new AlteredLogRefusedError(
      `the log can't be held against what was signed: ${fault.message}: SEAL_KEY lacks the key that signed it`,
    );
  throw new AlteredLogRefusedError(
    `the log is not what was signed, and would be carried into the read model: ${fault.message}`,
  );
}
