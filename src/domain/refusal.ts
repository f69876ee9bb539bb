import { type RefusalCode, REFUSALS } from './errors.js';

/** The domain refused a command; nothing was appended. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  /** The refused field of the request, such as `purchase.receivers[1].phone_number`; empty: no field. */
  readonly field: string;
  constructor(code: RefusalCode, field = '') {
    super(REFUSALS[code][1]);
    this.code = code;
    this.field = field;
  }
}
