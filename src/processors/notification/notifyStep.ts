/** One attempt to notify a gift's receiver. Never sends what may have been sent. */
import { fold } from '../../domain/decider.js';
import { giftStream } from '../../domain/gift/events.js';
import { giftAggregate } from '../../domain/gift/state.js';
import {
  type Channel,
  notificationAggregate,
  type NotificationFailed,
  type NotificationSent,
  type NotificationStarted,
  type Occasion,
  notificationStream,
  type ReminderSent,
  whyNotNotified,
} from '../../domain/notification.js';
import type { GiftsPurchased, PurchaseReceiver } from '../../domain/purchase/events.js';
import type { ExpectedRevision } from '../../ports/eventStore.js';
import {
  NOTIFICATION_REQUESTS,
  type SendLookup,
  type SendReply,
  type SendRequest,
} from '../../messages/notifications.js';
import { type Address, addressOf, type Contact } from './address.js';
import type { NotificationWork } from './state.js';
import { askWorker, type Cause, causeOf, GiveUpError, neverStarted, type StepDeps } from '../runner/index.js';

export interface NotifyDeps extends Pick<StepDeps, 'events' | 'bus' | 'writer' | 'now' | 'retryPolicy' | 'mayAct'> {
  /** The purchase as made; the gifts of one purchase share the object while it is cached. @throws UnavailableError */
  readonly purchase: (transactionId: string) => Promise<GiftsPurchased['data']>;
  /** Contact details of a user; `undefined`: no such user. @throws UnavailableError */
  readonly contact: (userId: string) => Promise<Contact | undefined>;
  /** Name of the buyer; `''`: the buyer has none. @throws UnavailableError */
  readonly senderName: (purchase: GiftsPurchased['data']) => Promise<string>;
  /** The phone number of an id; `undefined`: it was erased. @throws UnavailableError */
  readonly numberOf: (phoneId: string) => Promise<string | undefined>;
  /** The purchase's message; empty where there is none. @throws UnavailableError */
  readonly openText: (sealed: GiftsPurchased['data']['message']) => Promise<string>;
  readonly launchUrl: (giftId: string) => string;
}

/** State that the tries of one job share. */
export interface AttemptMemory {
  /** Number of the attempt that this process started and certainly has not handed to a worker yet. */
  unsent: number | undefined;
}

export function attemptMemory(): AttemptMemory {
  return { unsent: undefined };
}

export interface Attempt {
  readonly giftId: string;
  /** Number of the attempt, from 1. */
  readonly number: number;
  /** The id of the event that requested the attempt. */
  readonly askedBy: string;
  readonly receiver: PurchaseReceiver;
  readonly purchase: GiftsPurchased['data'];
  readonly reminder?: NonNullable<Occasion['reminder']>;
  /** Why the receiver must no longer be notified. A message sent before is still recorded. */
  readonly stopped?: string;
}

interface FirstNotification {
  readonly giftId: string;
  readonly purchase: GiftsPurchased['data'];
  readonly work: NotificationWork;
}

/**
 * Makes or resumes the first attempt to notify a gift's receiver.
 * @throws Error to be retried; a plain `Error` while the outcome is unknown, so that the work is parked in the end
 */
export async function notify(
  deps: NotifyDeps,
  { giftId, work, purchase }: FirstNotification,
  memory: AttemptMemory,
): Promise<void> {
  const gift = fold(giftAggregate, await deps.events.read(giftStream(giftId)));
  const stopped = whyNotNotified(gift, new Date(deps.now()).toISOString());
  const attempt: Omit<Attempt, 'askedBy'> = {
    giftId,
    number: 1,
    receiver: purchase.receivers[work.index] ?? {},
    purchase,
    ...(stopped === undefined ? {} : { stopped }),
  };
  // `memory` knows a start by this process; the stream, expected to be empty, shows one by another process.
  if (
    work.stage === 'due' &&
    memory.unsent === undefined &&
    (await startAttempt(deps, { ...attempt, askedBy: work.last.id }, memory, 'none', work.last)) === 'done'
  )
    return;
  const history = await deps.events.read(notificationStream(giftId));
  const last = history.at(-1);
  const state = fold(notificationAggregate, history);
  if (last !== undefined && state.status === 'started')
    await resumeAttempt(deps, { ...attempt, askedBy: state.askedBy }, memory, { ...state, last: causeOf(last) });
}

/** @returns `raced`: the stream was not at `expected`, so another process may have the attempt */
export async function startAttempt(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  expected: ExpectedRevision,
  cause: Cause,
): Promise<'done' | 'raced'> {
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
  const data = {
    transaction_id: attempt.purchase.transaction_id,
    channel: address.channel,
    ...identityOf(attempt),
  };
  const started = await deps.writer.append(stream, { type: 'NotificationStarted', data }, expected, reason);
  if (started === undefined) return 'raced';
  memory.unsent = attempt.number;
  await send(deps, attempt, memory, address, started);
  return 'done';
}

const NO_ADDRESS = 'no address';
const OUTCOME_UNKNOWN = 'nobody knows whether the receiver was notified';
export const REASSIGNED = 'given to another receiver';
export const NO_REMINDER = 'no longer to be reminded';

const identityOf = ({ number, askedBy }: Attempt): Pick<NotificationStarted['data'], 'attempt' | 'asked_by'> => ({
  attempt: number,
  asked_by: askedBy,
});

const commandIdOf = ({ giftId, number }: Attempt): string =>
  number === 1 ? `notify-${giftId}` : `notify-${giftId}-${number}`;

/** The link's URL differs in each resend, so that a provider's list of messages tells the attempts apart. */
function launchUrlOf({ launchUrl }: NotifyDeps, { giftId, number }: Attempt): string {
  return number === 1 ? launchUrl(giftId) : `${launchUrl(giftId)}?n=${number}`;
}

async function addressIn({ contact, numberOf }: NotifyDeps, { receiver }: Attempt): Promise<Address | undefined> {
  const { user_id, phone_id } = receiver;
  return addressOf(
    receiver,
    user_id === undefined ? undefined : await contact(user_id),
    phone_id === undefined ? undefined : await numberOf(phone_id),
  );
}

interface StartedAttempt {
  readonly startedAt: string;
  readonly channel: Channel;
  /** The last event of the notification's stream. */
  readonly last: Cause;
}

/** Looks the attempt up, unless this process knows that nothing was sent. @throws as `notify` */
export async function resumeAttempt(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  { startedAt, channel, last }: StartedAttempt,
): Promise<void> {
  const address = await addressIn(deps, attempt);
  const { giftId: gift_id, number } = attempt;
  if (memory.unsent !== number) {
    const lookup: SendLookup = {
      gift_id,
      ...numbered(number),
      started_at: startedAt,
      channel,
      to: address?.to ?? [],
      launch_url: launchUrlOf(deps, attempt),
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
    attempt.stopped === undefined &&
    address !== undefined &&
    address.channel !== channel
  )
    throw new GiveUpError(OUTCOME_UNKNOWN);
  if (attempt.stopped !== undefined || address === undefined) {
    const cause = attempt.stopped ?? NO_ADDRESS;
    return record(deps, attempt, { outcome: 'failed', cause, simulated: false }, channel, last);
  }
  return send(deps, attempt, memory, address, last);
}

const numbered = (number: number): { readonly attempt?: number } => (number === 1 ? {} : { attempt: number });

async function send(
  deps: NotifyDeps,
  attempt: Attempt,
  memory: AttemptMemory,
  { channel, to, locale }: Address,
  started: Cause,
): Promise<void> {
  const { giftId, number, purchase, reminder } = attempt;
  const request: SendRequest = {
    gift_id: giftId,
    ...numbered(number),
    transaction_id: purchase.transaction_id,
    buyer_id: purchase.buyer_id,
    channel,
    to,
    sender_name: await deps.senderName(purchase),
    product_name: purchase.product_name,
    message: reminder === undefined ? await deps.openText(purchase.message) : '',
    launch_url: launchUrlOf(deps, attempt),
    locale,
    ...(reminder === undefined ? {} : { expires_on: reminder.expires_on }),
  };
  deps.mayAct();
  memory.unsent = undefined;
  const reply = await askWorker(deps, NOTIFICATION_REQUESTS.send, request).catch((error: unknown) => {
    if (neverStarted(error)) memory.unsent = number;
    throw error;
  });
  await record(deps, attempt, reply, channel, started);
}

/** Records the worker's answer. A conflict means that it is recorded already. */
async function record(
  { writer }: NotifyDeps,
  attempt: Attempt,
  reply: SendReply,
  channel: Address['channel'],
  after: Cause,
): Promise<void> {
  const event: NotificationSent | ReminderSent | NotificationFailed =
    reply.outcome === 'sent'
      ? {
          type: attempt.reminder === undefined ? 'NotificationSent' : 'ReminderSent',
          data: { channel, provider: reply.provider, message_id: reply.message_id, ...identityOf(attempt) },
        }
      : { type: 'NotificationFailed', data: { cause: reply.cause, ...identityOf(attempt) } };
  await writer.append(notificationStream(attempt.giftId), event, after.revision, {
    commandId: commandIdOf(attempt),
    cause: after,
    simulated: reply.simulated,
  });
}
