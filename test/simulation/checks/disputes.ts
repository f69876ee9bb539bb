/** The log knows each dispute at the provider once, with its outcome, and blocks the purchase's gifts as that requires. */
import { type GiftReplaced, giftStream } from '../../../src/domain/gift/events.js';
import { disputeCause } from '../../../src/domain/supportActions.js';
import { idOf } from '../../../src/domain/streamName.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { MadeDispute } from '../clients/disputes.js';
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';

type Data = Readonly<Record<string, unknown>>;

export function checkDisputes({ stored }: Pick<EventLog, 'stored'>, made: readonly MadeDispute[]): Finding[] {
  return made.flatMap((dispute) =>
    [...wrongInLog(stored, dispute), ...wronglyBlocked(stored, dispute)].map((text) => ({
      rule: 'disputes',
      text: `${dispute.disputeId}: ${text}`,
    })),
  );
}

/** A dispute that was won, also on appeal, stays won. */
const isLost = ({ outcomes }: MadeDispute): boolean => !outcomes.includes('won');

function wrongInLog(stored: EventLog['stored'], dispute: MadeDispute): string[] {
  const { transaction, disputeId, pence, outcomes } = dispute;
  const events = stored
    .filter(({ stream, type }) => stream === transactionStream(transaction) && type.startsWith('Dispute'))
    .map(({ type, data }) => ({ type, data: JSON.parse(data) as Data }))
    .filter(({ data }) => data['dispute_id'] === disputeId);
  const opened = events.filter(({ type }) => type === 'DisputeOpened');
  const known = events.findLast(({ type }) => type === 'DisputeClosed')?.data['outcome'];
  const outcome = outcomes.includes('won') ? 'won' : outcomes.at(-1);
  return [
    ...(opened.length === 1 ? [] : [`it is opened ${opened.length} times`]),
    ...opened.filter(({ data }) => data['amount'] !== pence).map(() => `its amount is not ${pence}`),
    ...(known === outcome ? [] : [`it ended as ${String(outcome)}, the log says ${String(known)}`]),
  ];
}

function wronglyBlocked(stored: EventLog['stored'], dispute: MadeDispute): string[] {
  const cause = disputeCause(dispute.disputeId);
  const blocked = new Map<string, boolean>();
  for (const { stream, type, data } of stored) {
    const { cause: by, transaction_id: of, replaced_by: other } = JSON.parse(data) as Data;
    if (type === 'GiftIssued' && of === dispute.transaction) blocked.set(stream, false);
    if (type === 'GiftBlocked' && by === cause) blocked.set(stream, true);
    if (type === 'GiftUnblocked' && by === cause) blocked.set(stream, false);
    // The money of a cancelled gift is settled otherwise.
    if (type === 'GiftCancelled') blocked.delete(stream);
    // The dispute concerns the gift in its place.
    if (type === 'GiftReplaced' && blocked.delete(stream))
      blocked.set(giftStream((other as GiftReplaced['data']['replaced_by']).gift_id), false);
  }
  return [...blocked]
    .filter(([, is]) => is !== isLost(dispute))
    .map(([stream, is]) => `the gift ${idOf(stream)} is ${is ? 'blocked' : 'not blocked'}`);
}
