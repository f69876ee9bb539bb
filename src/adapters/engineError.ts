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
