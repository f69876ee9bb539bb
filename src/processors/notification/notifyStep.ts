/** The next attempt to notify a gift's receiver, be it the first or a resend. Never sends what may have been sent. */
import { readGiftAndNotification } from '../../commands/readStreams.js';
import { fold } from '../../domain/decider.js';
import { giftAggregate, type IssuedGift } from '../../domain/gift/state.js';
import {
  type Attempt as StartedAttempt,
  notificationAttempts,
  type NotificationFailed,
  type NotificationSent,
  type NotificationStarted,
  notificationStream,
  type Occasion,
  type ReminderSent,
} from '../../domain/notification.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { whyNotNotified } from '../../domain/whyNotNotified.js';
import {
  NOTIFICATION_REQUESTS,
  type SendLookup,
  type SendReply,
  type SendRequest,
} from '../../messages/notifications.js';
import type { ExpectedRevision } from '../../ports/eventStore.js';
import { askWorker, type Cause, causeOf, GiveUpError, neverStarted, type StepDeps } from '../runner/index.js';
import { type Address, type ReachDeps, reachOf } from './address.js';

/** The fields of a purchase that its messages show. */
export type ShownPurchase = Pick<GiftsPurchased['data'], 'buyer_id' | 'product_name' | 'message'>;

export interface NotifyDeps
  extends
    Pick<StepDeps, 'events' | 'bus' | 'writer' | 'now' | 'retryPolicy' | 'mayAct'>,
    Pick<ReachDeps, 'contact' | 'numberOf'> {
  /** @throws UnavailableError */
  readonly purchase: (transactionId: string) => Promise<ShownPurchase>;
  /** Name of a buyer; `''`: the buyer has none. @throws UnavailableError */
  readonly senderName: (buyerId: string) => Promise<string>;
  /** The purchase's message; empty where there is none. @throws UnavailableError */
  readonly openText: (sealed: GiftsPurchased['data']['message']) => Promise<string>;
  readonly launchUrl: (giftId: string) => string;
}

/** State that the tries of one job share. */
export interface AttemptMemory {
  /** Number of the attempt that this process started and certainly has not handed to a worker yet. */
  unsent: number | undefined;
}

interface Attempt {
  readonly giftId: string;
  readonly transactionId: string;
  /** Number of the attempt, from 1. */
  readonly number: number;
  readonly occasion: Occasion;
  readonly gift: IssuedGift;
  /** Why the receiver must no longer be notified. A message sent before is still recorded. */
  readonly stopped: string | undefined;
}

/** `raced`: the stream was not at the expected revision, so another process may have the attempt. */
type Outcome = 'done' | 'raced';

/**
 * Makes or resumes the next attempt, decided by the streams. @param last the last event that requested a notification
 * @returns whether more may be left to do
 * @throws Error to be retried; a plain `Error` while the outcome is unknown, so that the work is parked in the end
 */
export async function notify(deps: NotifyDeps, giftId: string, last: Cause, memory: AttemptMemory): Promise<boolean> {
  const [ofGift, ofNotification] = await readGiftAndNotification(deps.events, giftId);
  const { next } = notificationAttempts(ofGift, ofNotification);
  if (next.do === 'nothing') return false;
  const gift = fold(giftAggregate, ofGift);
  if (gift.status === 'none') throw new Error('a notification of a gift that was never issued');
  const { number, occasion } = next.do === 'start' ? next : next.attempt;
  const attempt: Attempt = {
    giftId,
    transactionId: gift.issued.transaction_id,
    number,
    occasion,
    gift,
    stopped: whyNotNotified(gift, occasion, new Date(deps.now()).toISOString()),
  };
  const latest = ofNotification.at(-1);
  const outcome =
    next.do === 'start' || latest === undefined
      ? await startAttempt(deps, attempt, memory, latest?.revision ?? 'none', last)
      : await resumeAttempt(deps, attempt, memory, next.attempt, causeOf(latest));
  // Requests are answered in their order.
  return outcome === 'raced' || occasion.id !== last.id;
}

async function startAttempt(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  expected: ExpectedRevision,
  cause: Cause,
): Promise<Outcome> {
  const stream = notificationStream(attempt.giftId);
  const address = attempt.stopped === undefined ? await addressIn(deps, attempt) : undefined;
  const reason = { commandId: commandIdOf(attempt), cause };
  if (address === undefined) {
    const failed: NotificationFailed = {
      type: 'NotificationFailed',
      data: { cause: attempt.stopped ?? NO_ADDRESS, ...identityOf(attempt) },
    };
    return (await deps.writer.append(stream, failed, expected, reason)) === undefined ? 'raced' : 'done';
  }
  const data = { transaction_id: attempt.transactionId, channel: address.channel, ...identityOf(attempt) };
  const started = await deps.writer.append(stream, { type: 'NotificationStarted', data }, expected, reason);
  if (started === undefined) return 'raced';
  memory.unsent = attempt.number;
  return send(deps, attempt, memory, address, started);
}

const NO_ADDRESS = 'no address';
const OUTCOME_UNKNOWN = 'nobody knows whether the receiver was notified';

const identityOf = ({ number, occasion }: Attempt): Pick<NotificationStarted['data'], 'attempt' | 'asked_by'> => ({
  attempt: number,
  asked_by: occasion.id,
});

const commandIdOf = ({ giftId, number }: Attempt): string =>
  number === 1 ? `notify-${giftId}` : `notify-${giftId}-${number}`;

/** The link's URL differs in each resend, so that a provider's list of messages tells the attempts apart. */
function launchUrlOf({ launchUrl }: NotifyDeps, { giftId, number }: Attempt): string {
  return number === 1 ? launchUrl(giftId) : `${launchUrl(giftId)}?n=${number}`;
}

async function addressIn(deps: NotifyDeps, { occasion, gift }: Attempt): Promise<Address | undefined> {
  return (await reachOf(deps, occasion.receiver, gift)).address;
}

/** Looks the attempt up, unless this process knows that nothing was sent. @throws as `notify` */
async function resumeAttempt(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  { channel, startedAt }: Pick<StartedAttempt, 'channel' | 'startedAt'>,
  last: Cause,
): Promise<Outcome> {
  const address = await addressIn(deps, attempt);
  const { giftId: gift_id, number } = attempt;
  const stopped = attempt.stopped ?? (address === undefined ? NO_ADDRESS : undefined);
  if (memory.unsent !== number) {
    const lookup: SendLookup = {
      gift_id,
      ...numbered(number),
      started_at: startedAt,
      channel,
      to: address?.to ?? [],
      launch_url: launchUrlOf(deps, attempt),
      ...(stopped === undefined ? {} : { stopped }),
    };
    const found = await askWorker(deps, NOTIFICATION_REQUESTS.lookUpNotification, lookup);
    if (found.outcome === 'unknown') throw new Error(OUTCOME_UNKNOWN);
    if (found.outcome === 'sent' || found.outcome === 'failed') return record(deps, attempt, found, channel, last);
  }
  // For a push, `never` only says that sending it again is safe: it replaces the message on the device. By another
  // channel the receiver would be notified twice.
  if (
    memory.unsent !== number &&
    channel === 'push' &&
    address !== undefined &&
    stopped === undefined &&
    address.channel !== channel
  )
    throw new GiveUpError(OUTCOME_UNKNOWN);
  if (stopped !== undefined || address === undefined)
    return record(deps, attempt, { outcome: 'failed', cause: stopped ?? NO_ADDRESS, simulated: false }, channel, last);
  return send(deps, attempt, memory, address, last);
}

const numbered = (number: number): { readonly attempt?: number } => (number === 1 ? {} : { attempt: number });

async function send(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  { channel, to, locale }: Address,
  started: Cause,
): Promise<Outcome> {
  const { giftId, transactionId, number, occasion } = attempt;
  const { reminder } = occasion;
  const purchase = await deps.purchase(transactionId);
  const request: SendRequest = {
    gift_id: giftId,
    ...numbered(number),
    transaction_id: transactionId,
    buyer_id: purchase.buyer_id,
    channel,
    to,
    sender_name: await deps.senderName(purchase.buyer_id),
    product_name: purchase.product_name,
    message: reminder === undefined ? await deps.openText(purchase.message) : '',
    launch_url: launchUrlOf(deps, attempt),
    locale,
    ...(reminder === undefined ? {} : { expires_on: reminder.expires_on, until: reminder.until }),
  };
  memory.unsent = undefined;
  const reply = await askWorker(deps, NOTIFICATION_REQUESTS.send, request).catch((error: unknown) => {
    if (neverStarted(error)) memory.unsent = number;
    throw error;
  });
  return record(deps, attempt, reply, channel, started);
}

/** Records the worker's answer. */
async function record(
  { writer }: NotifyDeps,
  attempt: Attempt,
  reply: SendReply,
  channel: Address['channel'],
  after: Cause,
): Promise<Outcome> {
  const event: NotificationSent | ReminderSent | NotificationFailed =
    reply.outcome === 'sent'
      ? {
          type: attempt.occasion.reminder === undefined ? 'NotificationSent' : 'ReminderSent',
          data: { channel, provider: reply.provider, message_id: reply.message_id, ...identityOf(attempt) },
        }
      : { type: 'NotificationFailed', data: { cause: reply.cause, ...identityOf(attempt) } };
  const recorded = await writer.append(notificationStream(attempt.giftId), event, after.revision, {
    commandId: commandIdOf(attempt),
    cause: after,
    simulated: reply.simulated,
  });
  return recorded === undefined ? 'raced' : 'done';
}
