/** An engine can't be used as the settings have it; the message names the setting and says what to change. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  /** The setting, for example `NATS_URL`. */
  readonly setting: string;
  constructor(setting: string, message: string, cause?: unknown) {
    super(`${setting}: ${message}`, cause === undefined ? undefined : { cause });
    this.setting = setting;
  }
}

/**
 * A server does not answer, or not in time. It may do so later: a start waits for it, for as long as the settings say.
 */
export class NoAnswerError extends EngineError {}
