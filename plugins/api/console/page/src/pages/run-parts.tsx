import { Link } from '@tanstack/react-router'
import type { Schemas } from '@svc/client'
import type { ReactNode } from 'react'
import { Json } from '../message.tsx'

export type Run = Schemas['WorkflowStatus']

export const RunLink = ({ id }: { readonly id: string }) => (
  <Link to="/runs" search={{ id }}>
    <code>{id.slice(0, 13)}</code>
  </Link>
)

interface ValueProps {
  readonly name: string
  readonly value: unknown
  readonly file?: Schemas['WorkflowFile'] | null
}

/** A value of a run. A large one is a file. */
export function Value({ name, value, file = null }: ValueProps): ReactNode {
  return (
    <section className="value">
      <h3 className="section-title">{name}</h3>
      {file ? (
        <p className="note">
          {Math.round(file.size / 1024).toLocaleString('en')} KiB of JSON.{' '}
          <a href={file.url} download={`${name}.json`}>
            Download it
          </a>
        </p>
      ) : (
        <Json value={value} label={name} />
      )}
    </section>
  )
}
