/** These settings give no usable engine; the message names the setting and what to change. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly setting: string;
  constructor(setting: string, message: string, cause?: unknown) {
    super(`${setting}: ${message}`, cause === undefined ? undefined : { cause });
    this.setting = setting;
  }
}

/** The server does not answer in time. A starting service retries, as long as its settings allow. */
export class NoAnswerError extends EngineError {}
