/** Whose events a caller sees, in the feed and as webhooks (docs/api/events.md#list-events). */
import { type EndpointOwner, ownerName } from '../../domain/webhookEndpoint.js';
import { type Viewer, viewerOf } from '../../projections/feed/feedPage.js';
import { HttpError } from '../pipeline/errors.js';
import type { Principal } from '../pipeline/principal.js';

/** Forms of an event: as the feed has it, or as a webhook's body. */
export const FORMS = ['event', 'webhook'] as const;
export type Form = (typeof FORMS)[number];

/** The owner of the webhook endpoints that a caller sees. @throws HttpError `forbidden` */
export function ownerOf({ principal }: { readonly principal: Principal }): EndpointOwner {
  if (principal.kind === 'client') return { kind: 'client', id: principal.clientId };
  if (principal.kind === 'user') {
    const { merchant_id: id, permissions } = principal.user;
    if (id !== null && permissions.includes('webhooks')) return { kind: 'merchant', id };
  }
  throw new HttpError('forbidden');
}

/** In a webhook's form a caller sees what their endpoints would be sent. @throws HttpError `forbidden` */
export const viewerFor = (principal: Principal, form: Form): Viewer =>
  form === 'event' ? principal : viewerOf(ownerName(ownerOf({ principal })));
