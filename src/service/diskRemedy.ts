import { AlteredEventError, UnavailableError } from '../ports/unavailable.js';

/** The remedy, as text, where a file of the embedded engines can't be used; `undefined` for other errors. */
export function diskRemedy(error: unknown): string | undefined {
  if (error instanceof AlteredEventError) return 'gift audit verify names what was altered';
  const waits = error instanceof UnavailableError;
  const { code } = ((waits ? error.cause : error) ?? {}) as { readonly code?: unknown };
  if (typeof code !== 'string' || !(code.startsWith('SQLITE_') || (waits && /^(ENOSPC|EDQUOT)$/.test(code))))
    return undefined;
  if (/^(SQLITE_(FULL|IOERR)|E)/.test(code)) return 'see that there is room on its disk, and that the disk is well';
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return 'try again: a bad read may pass; where it fails in the same way each time, the file is damaged (see the chapter Failing part of the runbook)';
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code))
    return 'see that this user may write all files there, and that it is not mounted read-only';
  return 'see that nothing else uses it, and try again';
}
