/** An engine can't be used with these settings; the message names the setting and what to change. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly setting: string;
  constructor(setting: string, message: string, cause?: unknown) {
    super(`${setting}: ${message}`, cause === undefined ? undefined : { cause });
    this.setting = setting;
  }
}

/** A server does not answer in time. A start waits for it, as long as the settings say. */
export class NoAnswerError extends EngineError {}
