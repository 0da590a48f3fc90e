const HIDDEN = '[secret]'
/** Redacting shorter values would hide ordinary words. */
const SHORTEST = 8
/** A line of a value with several lines, such as a private key, is redacted on its own from this length on. */
const SHORTEST_LINE = 16

/** The registered values with the number of their registrations. */
const registered = new Map<string, number>()
/** All forms of the registered values, the longest first, because a form can contain another. */
let forms: readonly string[] = []

/**
 * Keeps a value out of the output of this process: its log, its errors, its HTTP answers and its stored runs. Returns the end of
 * the registration. A value of fewer than 8 characters is not redacted.
 */
export function registerSecret(value: string): () => void {
  if (value.length < SHORTEST) return () => {}
  registered.set(value, (registered.get(value) ?? 0) + 1)
  if (registered.get(value) === 1) collect()
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    const left = (registered.get(value) ?? 1) - 1
    if (left > 0) return void registered.set(value, left)
    registered.delete(value)
    collect()
  }
}

function collect(): void {
  const all = [...registered.keys()].flatMap(formsOf)
  forms = [...new Set(all)].filter(form => form.length >= SHORTEST).toSorted((a, b) => b.length - a.length)
}

/** Replaces the registered values in a text, also where they are quoted, encoded for a URL, or in Base64. */
export function redactText(text: string): string {
  if (forms.length === 0) return text
  let clean = text
  for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, HIDDEN)
  return clean
}

/** Replaces the registered values in all texts and keys of plain data. Data without them is returned as it is. */
export function redactData<T>(value: T): T {
  return forms.length === 0 ? value : (redacted(value) as T)
}

function redacted(value: unknown): unknown {
  if (typeof value === 'string') return redactText(value)
  if (Array.isArray(value)) {
    const items = value.map(redacted)
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof Date) return value
  const entries = Object.entries(value)
  const clean = entries.map(([key, item]): [string, unknown] => [redactText(key), redacted(item)])
  const isSame = clean.every(([key, item], at) => key === entries[at]![0] && item === entries[at]![1])
  return isSame ? value : Object.fromEntries(clean)
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

function formsOf(value: string): string[] {
  const lines = value.split(/\r?\n/)
  const parts = lines.length === 1 ? [] : lines.map(line => line.trim()).filter(line => line.length >= SHORTEST_LINE)
  const bytes = Buffer.from(value)
  return [
    ...[value, ...parts].flatMap(text => [text, inJson(text), inJson(inJson(text)), encodeURIComponent(text.toWellFormed())]),
    bytes.toString('hex'),
    ...[0, 1, 2].flatMap(shift => inBase64(bytes, shift)),
  ]
}

/** The part of the Base64 of a text that is the same whatever stands before and after the value, `shift` bytes into a group. */
function inBase64(bytes: Buffer, shift: number): string[] {
  const bits = (shift + bytes.length) * 8
  const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
  const own = text.slice(Math.ceil((shift * 8) / 6), Math.floor(bits / 6))
  return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
}
