/** Refusals on the command line: the API's message, and a remedy. */
import type { RefusalCode } from '../domain/errors.js';
import { Refusal } from '../domain/refusal.js';
import { CommandFailure } from './terminal.js';

const WHAT_TO_DO: Partial<Readonly<Record<RefusalCode, string>>> = {
  gift_not_found: "give a gift's id or shortcode",
  gift_expired: 'extend it first (gift gifts extend)',
  gift_blocked: 'see why (gift history) and free it first (gift gifts unblock)',
  gift_has_voucher:
    'its code could still be used; refund the gift with --voided once the code is worthless, and buy another',
  gift_has_no_receiver: 'give it to one (gift gifts reassign)',
  notification_pending:
    'gift history shows how far that is; a parked notification is retried or discarded first (gift parked list)',
  receiver_not_found: 'there is no active user with this id',
  person_not_found:
    "give a user's id, or a number with --phone (gift people find names its user); of a number without gifts nothing is kept",
  number_of_user: 'gift people find names them',
  erasure_of_staff: 'take away their roles, merchant or active first (gift import)',
  invalid_phone_number: 'give a mobile number such as 07700 900102 or +447700900102',
  parked_work_not_found: 'gift parked list --state all shows what there is',
  parked_work_ambiguous: 'gift parked list shows their ids',
  webhook_endpoint_not_found: 'gift webhooks list shows all',
  webhook_endpoint_disabled: 'its owner enables it again',
  event_not_found: 'gift webhooks attempts shows events; --position finds those without an attempt',
  work_retried: 'it can be discarded once it is parked again (gift parked show)',
  work_discarded: 'a notification has been recorded as failed (gift gifts resend sends another), a charge as declined',
};

/** Turns a refusal into a failure with a remedy; any other error is returned as it is. */
export function describeRefusal(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error;
  const { message } = error;
  const advice = WHAT_TO_DO[error.code];
  return new CommandFailure(advice === undefined ? message : `${message.replace(/\.$/, '')}: ${advice}`);
}

export function throwDescribed(error: unknown): never {
  throw describeRefusal(error);
}
