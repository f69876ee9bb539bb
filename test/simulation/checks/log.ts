/** What holds of every log, whatever failed while it was written. */
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { checkStreams } from './streams.js';

/** Types of which a stream has one event at most, in groups: one event of each group. */
const ONCE: readonly (readonly string[])[] = [
  ['GiftIssued'],
  ['GiftsPurchased'],
  ['PaymentCharged', 'PaymentDeclined'],
];

export function checkLog({ stored }: Pick<EventLog, 'stored'>): Finding[] {
  const findings: Finding[] = [];
  const found = (rule: string, text: string): void => void findings.push({ rule, text });
  const ids = new Set<string>();
  const once = new Map<string, string>();
  const redeemed = new Map<string, string>();
  for (const { id, stream, type, position, data } of stored) {
    if (ids.has(id)) found('event ids', `${position}: the event id ${id} is in the log twice`);
    ids.add(id);
    for (const group of ONCE) {
      if (!group.includes(type)) continue;
      const key = `${stream} ${group.join(' ')}`;
      const before = once.get(key);
      if (before !== undefined) found('once', `${stream} has ${type} at ${position}, and ${before}`);
      once.set(key, `${type} at ${position}`);
    }
    if (type === 'GiftRedeemed' || type === 'GiftUnredeemed') {
      const { redemption_id: redemption } = JSON.parse(data) as { readonly redemption_id: string };
      const present = redeemed.get(stream);
      if (type === 'GiftRedeemed') {
        if (present !== undefined) found('redemptions', `${stream} is redeemed twice at ${position}: ${present}`);
        redeemed.set(stream, redemption);
      } else {
        if (present !== redemption)
          found('redemptions', `${stream} at ${position}: ${redemption} was not to be reversed`);
        redeemed.delete(stream);
      }
    }
  }
  return [...findings, ...checkStreams(stored)];
}
