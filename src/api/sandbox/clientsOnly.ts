import { HttpError } from '../pipeline/errors.js';
import type { EarlyCall } from '../pipeline/route.js';

/** Time and data of a sandbox belong to its clients. @throws HttpError `forbidden` */
export function refuseUsers({ principal }: Pick<EarlyCall, 'principal'>): void {
  if (principal.kind !== 'client') throw new HttpError('forbidden');
}
