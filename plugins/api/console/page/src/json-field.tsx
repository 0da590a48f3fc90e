import { useState } from 'react'
import { messageOf, textIn } from './api.ts'
import { JsonEditor } from './json-editor.tsx'

interface JsonFieldProps {
  readonly name: string
  readonly label: string
  readonly value: unknown
}

/** A value as JSON, in a form. Text that is no JSON is said at once; `jsonIn` throws for it. */
export function JsonField({ name, label, value }: JsonFieldProps) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2) ?? '')
  return (
    <>
      <JsonEditor label={label} text={text} onChange={setText} problem={problemIn(text)} />
      <input type="hidden" name={name} value={text} />
    </>
  )
}

function problemIn(text: string): string | undefined {
  if (text.trim() === '') return undefined
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** The value of a field of a form; null if it is empty. Throws for text that is no JSON. */
export function jsonIn(data: FormData, name: string): unknown {
  const text = textIn(data, name)
  return text === '' ? null : JSON.parse(text)
}
