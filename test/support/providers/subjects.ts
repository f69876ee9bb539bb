import { NOTIFICATION_REQUESTS } from '../../../src/messages/notifications.js';
import { PAYMENT_REQUESTS } from '../../../src/messages/payments.js';

const REQUESTS = { ...PAYMENT_REQUESTS, ...NOTIFICATION_REQUESTS };

/** The subject of each request that workers answer. */
export const SUBJECTS = Object.fromEntries(
  Object.entries(REQUESTS).map(([name, { subject }]) => [name, subject]),
) as Readonly<Record<keyof typeof REQUESTS, string>>;
