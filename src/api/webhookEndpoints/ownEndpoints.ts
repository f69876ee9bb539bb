/** Whose webhook endpoints a caller sees (docs/api/webhooks.md#webhook-endpoints). */
import { type EndpointOwner, ownerName } from '../../domain/webhookEndpoint.js';
import { Refusal } from '../../domain/refusal.js';
import { type EndpointDocument, endpointDocument, type WebhookDocument } from '../../projections/webhookEndpoints.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';

type Endpoints = Pick<ReadModel<WebhookDocument>, 'find' | 'get'>;

/** @throws Refusal `webhook_endpoint_not_found`; UnavailableError */
export async function ownEndpoint(endpoints: Endpoints, owner: EndpointOwner, id: string): Promise<EndpointDocument> {
  const document = (await endpoints.get(endpointDocument(id))) as EndpointDocument | undefined;
  if (document === undefined || document.state === 'deleted' || document.owner !== ownerName(owner))
    throw new Refusal('webhook_endpoint_not_found');
  return document;
}

/** The owner's endpoints except deleted ones, in the order of their creation. @throws UnavailableError */
export async function allOwnEndpoints(endpoints: Endpoints, owner: EndpointOwner): Promise<EndpointDocument[]> {
  const found = await endpoints.find({
    where: { owner: ownerName(owner), state: { in: ['enabled', 'disabled'] satisfies EndpointDocument['state'][] } },
  });
  const orderOf = ({ created_at, endpoint_id }: EndpointDocument): string => `${created_at} ${endpoint_id}`;
  return found
    .map(({ body }) => body as EndpointDocument)
    .sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1));
}
