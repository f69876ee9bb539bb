/**
 * Spans of a trace, where tracing is on: one switch a process, as OpenTelemetry has it. Off, as it is by default, each
 * costs one comparison. A trace goes from a request over its events to the notification: events carry the context in
 * their metadata, bus messages beside their payload, as a W3C `traceparent` (https://www.w3.org/TR/trace-context/).
 */

/** A value that a span may carry. Never personal, never secret, no whole gift id (decisions 11). */
export type Attribute = string | number | boolean;

/** What a span is. */
export interface SpanDescription {
  readonly name: string;
  /** OpenTelemetry's kind. Default `internal`. */
  readonly kind?: 'internal' | 'server' | 'client' | 'consumer';
  readonly attributes?: Readonly<Record<string, Attribute>>;
  /** The `traceparent` that it follows. Absent: what runs now, or nothing. One that is none begins a trace. */
  readonly parent?: string | undefined;
  /** Headers of a request that it may follow instead, in whatever form the propagators understand. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** `traceparent`s of what it has to do with beside its parent. */
  readonly links?: readonly string[];
}

/** A span under way. */
export interface Span {
  rename(name: string): void;
  set(attributes: Readonly<Record<string, Attribute>>): void;
  /** Marks it as failed, by the kind of error: messages may hold anything. */
  fail(kind: string): void;
}

/** What makes spans. */
export interface Tracing {
  /** Runs `work` in a span; a failure marks it, and is thrown on. */
  run<T>(description: SpanDescription, work: (span: Span) => Promise<T>): Promise<T>;
  /** The `traceparent` of the span that runs now; `undefined` outside of any. */
  current(): string | undefined;
}

let active: Tracing | undefined;

/** Switches tracing on, or (`undefined`) off. */
export function switchTracing(tracing: Tracing | undefined): void {
  active = tracing;
}

/** Whether tracing is on. What is wired for it at the start asks once. */
export function tracingOn(): boolean {
  return active !== undefined;
}

/** Runs `work` in a span where tracing is on, else just runs it. */
export async function inSpan<T>(describe: () => SpanDescription, work: (span: Span) => Promise<T>): Promise<T> {
  return active === undefined ? work(NO_SPAN) : active.run(describe(), work);
}

/** The `traceparent` of what runs now, where it is traced. */
export function currentTrace(): string | undefined {
  return active?.current();
}

const NO_SPAN: Span = { rename: () => undefined, set: () => undefined, fail: () => undefined };
