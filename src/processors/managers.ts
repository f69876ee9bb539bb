/** The process managers, in the order in which a takeover resumes their work; see docs/process-managers.md. */
import type { GiftIssued, GiftReassigned, GiftReleased, GiftUnblocked, ReminderDue } from '../domain/gift/events.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { ParkedName, ParkedWork, WorkParked, WorkRetried } from '../domain/parked.js';
import type { GiftsPurchased, PurchaseEvent } from '../domain/purchase/events.js';
import type { SendingEvent } from '../domain/sending.js';
import type { EventStore } from '../ports/eventStore.js';
import { disputeManager } from './dispute/manager.js';
import type { Contact } from './notification/address.js';
import { notificationManager } from './notification/manager.js';
import type { NotifyDeps } from './notification/notifyStep.js';
import { knownPurchases } from './notification/knownPurchases.js';
import { resendManager } from './notification/resendManager.js';
import type { ChargeDeps } from './purchase/chargeStep.js';
import { purchaseManager } from './purchase/manager.js';
import { walletPayments } from './purchase/walletPayments.js';
import { refundManager } from './refund/manager.js';
import {
  feedTypes,
  type ProcessManagers,
  type Processors,
  runManagers,
  type RunnerDeps,
  type StepDeps,
} from './runner/index.js';

export const MANAGERS = [purchaseManager, notificationManager, resendManager, refundManager, disputeManager] as const;

export const FEED_TYPES = feedTypes(MANAGERS);

/**
 * Events that a process manager must follow. An undelivered message leads to no work: support may request a resend.
 * Scheduled gifts are released by `schedule/`.
 */
type FeedEvent =
  | Exclude<PurchaseEvent, SendingEvent>
  | GiftIssued
  | GiftReassigned
  | GiftReleased
  | GiftUnblocked
  | ReminderDue
  | Exclude<NotificationEvent, { type: 'NotificationUndelivered' | 'ReminderSent' }>
  | WorkParked
  | WorkRetried;

// An event type without a process manager does not compile.
({}) satisfies Record<Exclude<FeedEvent['type'], FollowedBy<(typeof MANAGERS)[number]>>, true>;

type FollowedBy<M> = M extends { readonly events: infer E } ? keyof E : never;

export interface Lookups
  extends Pick<ChargeDeps, 'paymentMethod'>, Pick<NotifyDeps, 'contact' | 'numberOf' | 'openText' | 'launchUrl'> {}

export type ManagerDeps = StepDeps &
  Lookups &
  Pick<ChargeDeps, 'wallets'> &
  Pick<NotifyDeps, 'senderName' | 'purchase'>;

export function processManagers({
  paymentMethod,
  contact,
  numberOf,
  openText,
  launchUrl,
}: Lookups): ProcessManagers<ManagerDeps> {
  return {
    managers: MANAGERS,
    open: (deps) => ({
      ...deps,
      paymentMethod,
      contact,
      numberOf,
      openText,
      launchUrl,
      senderName: senderNames(contact),
      purchase: knownPurchases(deps.events),
      wallets: walletPayments(deps.events, deps.writer),
    }),
  };
}

/** Names of buyers, with one lookup for all receivers of a purchase; a failed one is repeated. */
function senderNames(contact: Lookups['contact']): NotifyDeps['senderName'] {
  const names = new WeakMap<GiftsPurchased['data'], Promise<string>>();
  return (purchase) => {
    const known =
      names.get(purchase) ?? contact(purchase.buyer_id).then((buyer: Contact | undefined) => buyer?.name ?? '');
    names.set(purchase, known);
    known.catch(() => names.delete(purchase));
    return known;
  };
}

/**
 * Whether parked work has ended since, successfully or not. The streams of its entity show that: a successful retry
 * appends nothing to the stream of parked work. @throws UnavailableError
 */
export async function isSettled(
  events: EventStore,
  { name, work }: { readonly name: ParkedName; readonly work: Pick<ParkedWork, 'entity' | 'transaction_id' | 'step'> },
): Promise<boolean> {
  const manager = MANAGERS.find(({ steps }) => steps.includes(work.step));
  if (manager === undefined) throw new Error(`parked by ${name} under an unknown step, ${work.step}`);
  return manager.isSettled(events, work);
}

export interface ProcessorDeps extends Omit<RunnerDeps<ManagerDeps>, 'processes'>, Lookups {}

export function runProcessors({
  paymentMethod,
  contact,
  numberOf,
  openText,
  launchUrl,
  ...deps
}: ProcessorDeps): Processors {
  return runManagers({
    ...deps,
    processes: processManagers({ paymentMethod, contact, numberOf, openText, launchUrl }),
  });
}
