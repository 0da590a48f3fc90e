import { redactData } from '@svc/core'
import type { Json } from '@svc/core/contracts'

const HIDDEN = '***'
/** Redacting shorter values would hide ordinary words. */
const SHORTEST = 4

/** Removes the values of secrets from stored and reported data: those of the run, and those of the service `Secrets`. */
export class Redaction {
  readonly #values: readonly string[]
  /** The value of `secrets` in reported data. */
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
    return redactData(this.isEmpty ? value : (this.#hidden(value) as T))
  }

  #hidden(value: unknown): unknown {
    if (typeof value === 'string') return this.#values.reduce((text, secret) => text.replaceAll(secret, HIDDEN), value)
    if (Array.isArray(value)) return value.map(item => this.#hidden(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.#hidden(key) as string, this.#hidden(item)]))
  }
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

/** The value itself, its JSON form, and its form in JSON within JSON. They differ for values with line breaks or quotes. */
const forms = (value: string): string[] => [value, inJson(value), inJson(inJson(value))]

/** The minimum size of a value in bytes of JSON. Counting stops beyond `limit`. */
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
