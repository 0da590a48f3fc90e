import type { Json } from '@svc/core/contracts'

const HIDDEN = '***'
/** Shorter values would hide words that are no secrets. */
const SHORTEST = 4

/** Takes the values of secrets out of what is stored or told. */
export class Redaction {
  readonly #values: readonly string[]
  /** What `secrets` is where it is told. */
  readonly shown: Readonly<Record<string, string>>

  constructor(secrets: Readonly<Record<string, string>>) {
    this.#values = [...new Set(Object.values(secrets).flatMap(forms))]
      .filter(value => value.length >= SHORTEST)
      .toSorted((a, b) => b.length - a.length)
    this.shown = Object.fromEntries(Object.keys(secrets).map(name => [name, HIDDEN]))
  }

  get isEmpty(): boolean {
    return this.#values.length === 0
  }

  hide<T>(value: T): T {
    return this.isEmpty ? value : (this.#hidden(value) as T)
  }

  #hidden(value: unknown): unknown {
    if (typeof value === 'string') return this.#values.reduce((text, secret) => text.replaceAll(secret, HIDDEN), value)
    if (Array.isArray(value)) return value.map(one => this.#hidden(one))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [this.#hidden(key) as string, this.#hidden(one)]))
  }
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

/** As it is, and as it stands in JSON, and in JSON within JSON: a key of several lines has others there. */
const forms = (value: string): string[] => [value, inJson(value), inJson(inJson(value))]

/** Bytes of JSON that a value has, at least; stops to count beyond `limit`. */
export function sizeUpTo(value: Json | undefined, limit: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 4
  let size = 2
  const inner = value as Readonly<Record<string, Json | undefined>>
  for (const key of Object.keys(inner)) {
    size += key.length + sizeUpTo(inner[key], limit - size)
    if (size > limit) break
  }
  return size
}
