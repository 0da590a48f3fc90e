import { type Fields, textAt } from '@svc/api-types'
import type { Json } from '@svc/core/contracts'

/** The API takes each name in two forms: `systemInstruction` and `system_instruction`. */
export const camelCased = (name: string): string => name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const snakeCased = (name: string): string => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** A field with a value, under its name in camelCase or snake_case. `null` counts as absent. */
export const given = (fields: Fields, name: string): Json | undefined => fields[name] ?? fields[snakeCased(name)] ?? undefined

/** A word of an enumeration in upper case. The API takes them in any case. */
export const wordAt = (value: Json | undefined, path: string): string => textAt(value, path).toUpperCase()

/** Text of a client in a message. */
export const shown = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)
