/** Parked work, a finding for each group of one cause. */
import type { ParkedName } from '../../../domain/parked.js';
import type { ParkedGroup } from '../../parked/groups.js';
import type { FindingCode, Found } from '../findings.js';

const CODES: Readonly<Record<ParkedName, FindingCode>> = {
  purchase: 'parked_purchases',
  refund: 'parked_refunds',
  dispute: 'parked_disputes',
  notification: 'parked_notifications',
};

export function checkParked(groups: readonly ParkedGroup[]): Found[] {
  return groups.map(({ id, process, step, cause, count, first_at, last_at, example }) => ({
    code: CODES[process],
    what: `${count} × ${process} ${step}, ${first_at === last_at ? first_at : `${first_at} to ${last_at}`}, such as ${example}: ${cause}`,
    command: `gift parked retry --group ${id} --reason "<why>"`,
  }));
}
