/**
 * An OpenTelemetry collector as far as it is used: takes spans by OTLP over HTTP, as JSON
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as it was sent. */
export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: it failed. */
  readonly status: number;
  /** What the process says of itself. */
  readonly resource: Readonly<Record<string, unknown>>;
}

/** The stand-in. */
export interface Collector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: readonly SentSpan[];
  /** Everything as it came. */
  readonly text: string;
  readonly paths: ReadonlySet<string>;
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<SentSpan, 'attributes' | 'links' | 'status' | 'resource'> & {
        readonly attributes: readonly Attribute[];
        readonly links?: SentSpan['links'];
        readonly status: { readonly code?: number };
      })[];
    }[];
  }[];
}

/** Opens it. */
export async function openCollector(): Promise<Collector> {
  const spans: SentSpan[] = [];
  const paths = new Set<string>();
  let all = '';
  const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
    Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      all += text;
      paths.add(request.url ?? '');
      for (const { resource, scopeSpans } of (JSON.parse(text) as Sent).resourceSpans) {
        for (const { attributes, links = [], status, ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
          spans.push({
            ...span,
            attributes: valuesOf(attributes),
            links,
            status: status.code ?? 0,
            resource: valuesOf(resource.attributes),
          });
        }
      }
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    paths,
    get text() {
      return all;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
