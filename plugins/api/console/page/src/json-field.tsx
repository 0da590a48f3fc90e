import { useId, useState } from 'react'
import { messageOf, textIn } from './api.ts'

interface JsonFieldProps {
  readonly name: string
  readonly label: string
  readonly value: unknown
  readonly rows?: number
}

/** A value as JSON. Text that is no JSON is said at once, and stops the form. */
export function JsonField({ name, label, value, rows = 5 }: JsonFieldProps) {
  const id = useId()
  const [problem, setProblem] = useState<string>()
  const check = (field: HTMLTextAreaElement) => {
    const found = problemIn(field.value)
    field.setCustomValidity(found ?? '')
    setProblem(found)
  }
  return (
    <label className="field">
      <span>{label}</span>
      <textarea
        className="textarea code"
        name={name}
        rows={rows}
        defaultValue={JSON.stringify(value, null, 2)}
        spellCheck={false}
        aria-describedby={problem === undefined ? undefined : id}
        aria-invalid={problem !== undefined}
        onChange={event => check(event.currentTarget)}
      />
      {problem !== undefined && (
        <span id={id} className="bad small">
          {problem}
        </span>
      )}
    </label>
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
