/** The description of events in AsyncAPI 3.0, made of the same schemas as that in OpenAPI. */
import type { Schema } from '../pipeline/route.js';
import { componentSchemas, pascalCase } from './schemas.js';
import type { DescribedWebhook } from './webhooks.js';

/** Events of the feed: one message for each type. */
interface DescribedFeed {
  readonly types: readonly string[];
  readonly event: Schema;
  /** One event in another format of the feed. */
  readonly also: { readonly contentType: string; readonly event: Schema };
}

interface AsyncApiInfo {
  readonly version: string;
  readonly publicUrl: string;
  readonly feed: DescribedFeed;
  /** Requests that the service makes, by name. */
  readonly webhooks: Readonly<Record<string, DescribedWebhook>>;
}

type Json = Readonly<Record<string, unknown>>;

const ref = (...path: readonly string[]): Json => ({ $ref: `#/${path.join('/')}` });

export function asyncApiDocument({ version, publicUrl, feed, webhooks }: AsyncApiInfo): object {
  const { reference, schemas } = componentSchemas();
  const { host, pathname, protocol } = new URL(publicUrl);
  const messages: Record<string, Json> = {
    cloudEvents: {
      title: 'Events as CloudEvents',
      contentType: feed.also.contentType,
      payload: { type: 'array', items: reference(feed.also.event) },
    },
  };
  for (const type of feed.types)
    messages[pascalCase(type)] = {
      name: type,
      title: type,
      payload: { allOf: [reference(feed.event), { type: 'object', properties: { type: { const: type } } }] },
    };
  for (const [name, { summary, description, headers, body, example }] of Object.entries(webhooks))
    messages[`webhook${pascalCase(name)}`] = {
      name,
      title: summary,
      ...(description === undefined ? {} : { description }),
      headers: {
        type: 'object',
        required: Object.keys(headers),
        properties: Object.fromEntries(
          Object.entries(headers).map(([header, text]) => [header, { type: 'string', description: text }]),
        ),
      },
      payload: reference(body),
      examples: [{ payload: example }],
    };
  const channel = (names: readonly string[], more: Json): Json => ({
    ...more,
    messages: Object.fromEntries(names.map((name) => [name, ref('components', 'messages', name)])),
  });
  const isWebhook = (name: string): boolean => name.startsWith('webhook');
  const names = Object.keys(messages);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Gift Commerce events',
      version,
      description:
        'What happens to purchases and gifts: read from the feed, page by page, or received as webhooks. The page of the feed, tokens and all else are in `/openapi.json`.',
    },
    defaultContentType: 'application/json',
    servers: { api: { host, protocol: protocol.slice(0, -1), ...(pathname === '/' ? {} : { pathname }) } },
    channels: {
      feed: channel(
        names.filter((name) => !isWebhook(name)),
        {
          address: '/api/v2/events',
          description: 'Pages of events, with long polls: `listEvents` of `/openapi.json`.',
        },
      ),
      webhooks: channel(names.filter(isWebhook), {
        address: null,
        servers: [],
        description: 'POST to the `url` of a webhook endpoint, one message each.',
      }),
    },
    operations: {
      listEvents: { action: 'send', channel: ref('channels', 'feed'), bindings: { http: { method: 'GET' } } },
      deliver: { action: 'send', channel: ref('channels', 'webhooks'), bindings: { http: { method: 'POST' } } },
    },
    components: { messages, schemas: schemas() },
  };
}
