/** A form that chooses what a list shows. What was typed stays as it was; the list follows when it is sent. */
import { useId, useState } from 'preact/hooks';
import { AS_TYPED } from './text.js';

export interface Filter {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'date' | 'datetime-local' | 'number';
  /** Values to choose from, with what is shown for each; the first one is that of no choice. */
  readonly choices?: readonly (readonly [value: string, label: string])[];
  readonly hint?: string;
}

/** Values by the names of filters. */
export type Chosen = Readonly<Record<string, string>>;

interface FiltersProps {
  readonly filters: readonly Filter[];
  readonly start?: Chosen;
  readonly choose: (chosen: Chosen) => void;
}

export function Filters({ filters, start = {}, choose }: FiltersProps) {
  const id = useId();
  const [typed, setTyped] = useState<Chosen>(start);
  const change = (name: string, value: string): void => setTyped({ ...typed, [name]: value });
  return (
    <search>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          choose(Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, value.trim()])));
        }}
      >
        {filters.map(({ name, label, type = 'text', choices, hint }) => {
          const own = `${id}-${name}`;
          const described = hint === undefined ? {} : { 'aria-describedby': `${own}-hint` };
          return (
            <div key={name}>
              <label for={own}>{label}</label>
              {choices === undefined ? (
                <input
                  id={own}
                  type={type}
                  {...(type === 'number' ? { min: 0, step: 'any' } : { maxLength: 256 })}
                  {...AS_TYPED}
                  value={typed[name] ?? ''}
                  onInput={({ currentTarget }) => change(name, currentTarget.value)}
                  {...described}
                />
              ) : (
                <select
                  id={own}
                  value={typed[name] ?? choices[0]?.[0] ?? ''}
                  onChange={({ currentTarget }) => change(name, currentTarget.value)}
                  {...described}
                >
                  {choices.map(([value, text]) => (
                    <option key={value} value={value}>
                      {text}
                    </option>
                  ))}
                </select>
              )}
              {hint === undefined ? null : <small id={`${own}-hint`}>{hint}</small>}
            </div>
          );
        })}
        <button type="submit">Show</button>
      </form>
    </search>
  );
}
