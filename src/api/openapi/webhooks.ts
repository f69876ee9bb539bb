/** The description's section of requests that the service makes (OpenAPI 3.1, `webhooks`). */
import type { Schema } from '../pipeline/route.js';
import { textSchema } from '../pipeline/schemas.js';

export interface DescribedWebhook {
  readonly operation: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** Descriptions of the request's headers, by header name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Schema;
  readonly example: unknown;
  /** Meaning of the receiver's answer, by its status. */
  readonly answers: Readonly<Record<string, string>>;
}

export function webhookItem(
  { operation, summary, description, tag, headers, body, example, answers }: DescribedWebhook,
  reference: (schema: Schema) => unknown,
): object {
  return {
    post: {
      operationId: operation,
      tags: [tag],
      summary,
      ...(description === undefined ? {} : { description }),
      security: [{}],
      parameters: Object.entries(headers).map(([name, text]) => ({
        name,
        in: 'header',
        required: true,
        description: text,
        schema: textSchema(),
      })),
      requestBody: { required: true, content: { 'application/json': { schema: reference(body), example } } },
      responses: Object.fromEntries(Object.entries(answers).map(([status, text]) => [status, { description: text }])),
    },
  };
}
