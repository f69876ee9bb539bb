/** What holds of every single stream: what a gift, a command or an attempt has done at most once, and in which order. */
import { commandPartOf } from '../../../src/domain/gift/redemptionIds.js';
import { parkedNameOf } from '../../../src/domain/parked.js';
import { idOf } from '../../../src/domain/streamName.js';
import type { StoredEvent } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';

type Data = Readonly<Record<string, unknown>>;

/** What of an event happens once in its stream; `undefined`: nothing of it does. */
const ONCE_OF: Readonly<Record<string, (data: Data) => string>> = {
  VoucherAssigned: () => 'a voucher',
  VoucherCodeAssigned: () => 'a gift',
  NotificationSent: ({ attempt }) => `the outcome of attempt ${String(attempt)}`,
  ReminderSent: ({ attempt }) => `the outcome of attempt ${String(attempt)}`,
  NotificationFailed: ({ attempt }) => `the outcome of attempt ${String(attempt)}`,
  GiftsRefunded: ({ refund_id, attempt }) => `the money of refund ${String(refund_id)}, attempt ${String(attempt)}`,
};

/** What is known of a stream so far. */
interface Known {
  readonly once: Set<string>;
  /** Last revision of each command of a caller. */
  readonly commands: Map<string, number>;
  /** Command parts of voided redemptions. */
  readonly voided: Set<string>;
  claimed: boolean;
  redeemed: boolean;
  cancelled: boolean;
}

/** Commands of the service itself may append to a stream several times. */
const OWN = 'system:';

export function checkStreams(stored: readonly StoredEvent[]): Finding[] {
  const findings: Finding[] = [];
  const streams = new Map<string, Known>();
  for (const event of stored) {
    const { stream, position } = event;
    const known = streams.get(stream) ?? {
      once: new Set(),
      commands: new Map(),
      voided: new Set(),
      claimed: false,
      redeemed: false,
      cancelled: false,
    };
    streams.set(stream, known);
    for (const text of [...repeated(known, event), ...(stream.startsWith('gift-') ? ofGift(known, event) : [])])
      findings.push({ rule: 'streams', text: `${stream} at ${position}: ${text}` });
  }
  return findings;
}

/** What was done twice. */
function repeated({ once, commands }: Known, { stream, type, revision, data, metadata }: StoredEvent): string[] {
  const wrong: string[] = [];
  const what = ONCE_OF[type]?.(JSON.parse(data) as Data);
  if (what !== undefined && once.has(what)) wrong.push(`${type} gives it ${what} for the second time`);
  if (what !== undefined) once.add(what);
  const { commandId: id, by } = JSON.parse(metadata) as { readonly commandId: string; readonly by: { user?: string } };
  // A command on a group of parked work decides on each piece by itself.
  const { entity } = JSON.parse(data) as { readonly entity?: string };
  const commandId = parkedNameOf(stream) === undefined ? id : `${id} ${entity}`;
  const before = commands.get(commandId);
  if (by.user?.startsWith(OWN) !== true && before !== undefined && before !== revision - 1)
    wrong.push(`${type} is of a command that had appended before, at revision ${before}`);
  commands.set(commandId, revision);
  return wrong;
}

/** What can't happen to a gift after what has happened to it. */
function ofGift(known: Known, { stream, type, revision, data }: StoredEvent): string[] {
  const wrong: string[] = [];
  const { redemption_id = '' } = JSON.parse(data) as { readonly redemption_id?: string };
  if (revision === 0 && type !== 'GiftIssued') wrong.push(`${type} comes before the gift ${idOf(stream)} is issued`);
  if (type === 'GiftClaimed' && known.claimed) wrong.push('it is claimed twice');
  if (type === 'GiftRedeemed' && known.cancelled) wrong.push('it is redeemed after it was cancelled');
  if (type === 'GiftRedeemed' && known.voided.has(commandPartOf(redemption_id)))
    wrong.push(`the redemption ${redemption_id} was cancelled for good before`);
  if (type === 'GiftCancelled' && known.redeemed) wrong.push('it is cancelled while it is redeemed');
  if (type === 'RedemptionVoided') known.voided.add(redemption_id);
  if (type === 'GiftClaimed' || type === 'GiftReassigned') known.claimed = type === 'GiftClaimed';
  if (type === 'GiftRedeemed' || type === 'GiftUnredeemed') known.redeemed = type === 'GiftRedeemed';
  if (type === 'GiftCancelled') known.cancelled = true;
  return wrong;
}
