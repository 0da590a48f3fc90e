/** A JSON Schema that carries the type of its values. */
export interface Typed<T> {
  readonly [keyword: string]: unknown
  readonly '~type'?: T
}

/** The type of the values of a `Typed` schema. */
export type ValueOf<S> = S extends Typed<infer T> ? T : never

/**
 * Builders of schemas for settings. The type follows from the schema, so that both cannot differ: `type Limits = ValueOf<typeof limits>`. Add
 * further keywords with `more`.
 */
export const typed = {
  /** An object with these properties and no others. All are optional for the type; `required` holds for the value. */
  object: <P extends Record<string, Typed<unknown>>>(
    properties: P,
    required: readonly string[] = []
  ): Typed<{ readonly [K in keyof P]?: ValueOf<P[K]> }> => ({
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  }),
  /** A text that is not empty. */
  text: (description: string, more: object = {}): Typed<string> => ({ type: 'string', minLength: 1, description, ...more }),
  /** A list of texts that are not empty. */
  texts: (description: string, more: object = {}): Typed<readonly string[]> => ({
    type: 'array',
    items: { type: 'string', minLength: 1 },
    description,
    ...more,
  }),
  flag: (description: string, more: object = {}): Typed<boolean> => ({ type: 'boolean', description, ...more }),
  number: (description: string, limits: object): Typed<number> => ({ type: 'number', ...limits, description }),
  /** One of these texts. */
  choice: <const V extends readonly string[]>(values: V, description: string): Typed<V[number]> => ({
    enum: values,
    description,
  }),
  /** A size that `bytesOf` reads: `512M`. */
  size: (description: string, more: object = {}): Typed<string> => ({
    type: 'string',
    pattern: '^\\d+[KMG]?$',
    ...more,
    description,
  }),
}

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** Returns the bytes of a size like `512M`, 0 if it is not a size. */
export function bytesOf(size: string): number {
  const [, digits = '', unit = ''] = /^(\d+)([KMG]?)$/.exec(size) ?? []
  return Number(digits) * UNITS[unit]!
}
