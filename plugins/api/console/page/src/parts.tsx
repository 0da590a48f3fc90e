import { useMutation } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { type Me, session } from './api.ts'
import { useCover } from './frame-guard.ts'
import { Failure } from './states.tsx'
import { useValue } from './value.ts'

const LazyPanel = lazy(() => import('./dialog.tsx').then(({ Panel }) => ({ default: Panel })))

interface PanelProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
}

/** A dialog over the page. Its code is loaded when the first one opens. */
export function Panel({ title, onClose, children }: PanelProps) {
  useCover()
  return (
    <Suspense>
      <LazyPanel title={title} isOpen onClose={onClose}>
        {children}
      </LazyPanel>
    </Suspense>
  )
}

/** The buttons of a dialog. */
export const Buttons = ({ onClose, children }: { readonly onClose: () => void; readonly children?: ReactNode }) => (
  <div className="row">
    {children}
    <button type="button" className="button" onClick={onClose}>
      Close
    </button>
  </div>
)

interface ActionProps {
  readonly label: string
  /** Does it, and reads again what has changed. */
  readonly act: () => Promise<unknown>
  readonly kind?: 'plain' | 'primary' | 'bad' | 'quiet'
  /** Asked before, in a dialog. */
  readonly confirm?: { readonly title: string; readonly text: ReactNode } | undefined
  readonly isOff?: boolean
}

const CLASSES = {
  plain: 'button',
  primary: 'button button-primary',
  bad: 'button button-bad',
  quiet: 'button button-quiet',
} as const

/** A button that does something at the server: busy meanwhile, and with the error beside it or in its dialog. */
export function Action({ label, act, kind = 'plain', confirm, isOff = false }: ActionProps) {
  const [isAsking, setAsking] = useState(false)
  const action = useMutation({ mutationFn: act, onSuccess: () => setAsking(false) })
  const button = (onClick: () => void) => (
    <button type="button" className={CLASSES[kind]} disabled={action.isPending || isOff} onClick={onClick}>
      {label}
    </button>
  )
  const close = () => {
    action.reset()
    setAsking(false)
  }
  return (
    <>
      {button(() => (confirm ? setAsking(true) : action.mutate()))}
      {action.error && !isAsking && <Failure error={action.error} onRetry={() => action.mutate()} />}
      {isAsking && confirm && (
        <Panel title={confirm.title} onClose={close}>
          <div>{confirm.text}</div>
          {action.error && <Failure error={action.error} />}
          <Buttons onClose={close}>{button(() => action.mutate())}</Buttons>
        </Panel>
      )}
    </>
  )
}

/** The mark of svc. */
export const BrandMark = () => (
  <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" className="brand-mark">
    <rect width="32" height="32" rx="8" className="brand-back" />
    <path d="M9 11.5h14M9 16h9M9 20.5h12" className="brand-lines" />
  </svg>
)

interface CardProps {
  readonly title: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export const Card = ({ title, actions, children }: CardProps) => (
  <section className="card" aria-label={title}>
    <div className="card-head">
      <h2 className="section-title">{title}</h2>
      {actions}
    </div>
    {children}
  </section>
)

/** Names and values, one under the other. Values that are not there are left out. */
export const Facts = ({ facts }: { readonly facts: readonly (readonly [name: string, value: ReactNode])[] }) => (
  <dl className="fact-grid">
    {facts
      .filter(([, value]) => value !== null && value !== undefined && value !== false)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

const NONE: Me = { principal: '', scopes: [], scheme: null, expires: null }

/** Who uses the page. */
export function useMe(): Me {
  const current = useValue(session)
  return 'me' in current && current.me ? current.me : NONE
}
