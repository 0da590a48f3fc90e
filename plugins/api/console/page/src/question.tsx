import { type FormEvent, useId, useState } from 'react'
import { messageOf } from './api.ts'
import { Json } from './message.tsx'
import { type Ask, answer, type Turn } from './turn.ts'

/** A member of a form that a tool asks for: MCP elicitation has texts, numbers, booleans and choices. */
interface Member {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly enumNames?: readonly string[]
  readonly oneOf?: readonly { readonly const?: unknown; readonly title?: string }[]
  readonly default?: unknown
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
}

interface Form {
  readonly properties: Readonly<Record<string, Member>>
  readonly required: readonly string[]
}

function formOf(schema: Record<string, unknown> | undefined): Form | undefined {
  if (!schema) return undefined
  const { properties, required } = schema as { properties?: Form['properties']; required?: string[] }
  return { properties: properties ?? {}, required: required ?? [] }
}

const INPUTS: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' }

/** The question of a tool, with its arguments: the reader decides what runs. */
export function Question({ turn, ask, input }: { readonly turn: Turn; readonly ask: Ask; readonly input: unknown }) {
  const [problem, setProblem] = useState<string>()
  const [isSent, setSent] = useState(false)
  const form = formOf(ask.form)
  const reply = async (allow: boolean, content?: Record<string, unknown>) => {
    setSent(true)
    setProblem(undefined)
    try {
      await answer(turn, ask, { allow, ...(content ? { content } : {}) })
    } catch (error) {
      setProblem(messageOf(error))
      setSent(false)
    }
  }
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    void reply(true, form && contentOf(form, new FormData(event.currentTarget)))
  }
  return (
    <form className="ask" onSubmit={submit} aria-label={`Question of ${ask.tool}`}>
      <p className="ask-question">{ask.question}</p>
      {!form && <Json value={input} label={`Arguments of ${ask.tool}`} />}
      {form && Object.entries(form.properties).map(([name, member]) => (
        <Input key={name} name={name} member={member} isRequired={form.required.includes(name)} />
      ))}
      {problem && (
        <p className="note note-bad" role="alert">
          {problem}
        </p>
      )}
      <div className="row">
        <button type="submit" className="button button-primary" disabled={isSent}>
          {form ? 'Send' : 'Allow'}
        </button>
        <button type="button" className="button" disabled={isSent} onClick={() => void reply(false)}>
          {form ? 'Decline' : 'Deny'}
        </button>
      </div>
    </form>
  )
}

interface InputProps {
  readonly name: string
  readonly member: Member
  readonly isRequired: boolean
}

function choicesOf({ enum: values, enumNames, oneOf }: Member): readonly (readonly [value: string, name: string])[] | undefined {
  if (oneOf) return oneOf.map(({ const: value, title }) => [String(value), title ?? String(value)])
  return values?.map((value, at) => [String(value), enumNames?.[at] ?? String(value)])
}

function Input({ name, member, isRequired }: InputProps) {
  const id = useId()
  const label = member.title ?? name
  const choices = choicesOf(member)
  const about = member.description === undefined ? {} : { 'aria-describedby': `${id}-about` }
  if (member.type === 'boolean')
    return (
      <label className="check">
        <input type="checkbox" name={name} defaultChecked={member.default === true} {...about} />
        <span>{label}</span>
        {member.description && <span className="muted" id={`${id}-about`}>{member.description}</span>}
      </label>
    )
  return (
    <label className="field">
      <span>{label}{isRequired ? '' : ' (optional)'}</span>
      {choices ? (
        <select className="select" name={name} required={isRequired} defaultValue={String(member.default ?? '')} {...about}>
          <option value="" disabled={isRequired}>–</option>
          {choices.map(([value, text]) => (
            <option key={value} value={value}>{text}</option>
          ))}
        </select>
      ) : (
        <Typed name={name} member={member} isRequired={isRequired} about={about} />
      )}
      {member.description && <span className="muted" id={`${id}-about`}>{member.description}</span>}
    </label>
  )
}

function Typed({ name, member, isRequired, about }: InputProps & { readonly about: object }) {
  const isNumber = member.type === 'number' || member.type === 'integer'
  return (
    <input
      className="input"
      name={name}
      type={isNumber ? 'number' : (INPUTS[member.format ?? ''] ?? 'text')}
      step={member.type === 'integer' ? 1 : isNumber ? 'any' : undefined}
      min={member.minimum}
      max={member.maximum}
      minLength={member.minLength}
      maxLength={member.maxLength}
      required={isRequired}
      defaultValue={member.default === undefined ? '' : String(member.default)}
      {...about}
    />
  )
}

/** The values of the form. Empty optional ones are left out. The server checks them. */
export function contentOf({ properties }: Form, data: FormData): Record<string, unknown> {
  const entries = Object.entries(properties).flatMap(([name, { type }]): [string, unknown][] => {
    if (type === 'boolean') return [[name, data.has(name)]]
    const text = String(data.get(name) ?? '')
    if (text === '') return []
    return [[name, type === 'number' || type === 'integer' ? Number(text) : text]]
  })
  return Object.fromEntries(entries)
}
