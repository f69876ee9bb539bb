export { deliveryState, endpointsOverview } from './overview.js';
export { type Deliveries, WEBHOOK_LEASE, WEBHOOK_PART } from './deliveries.js';
export { openDevelopersSender } from './developersSender.js';
export type { Sender } from './sender.js';
export { type DeliveryStatus, ENDPOINT_STATES } from './tally.js';
export { startWebhooks } from './webhooks.js';
