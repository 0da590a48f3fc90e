import { lazy, Suspense, useState } from 'react'

const LazyMenu = lazy(() => import('./menu.tsx').then(({ Menu }) => ({ default: Menu })))

interface MoreItem {
  readonly name: string
  readonly act: () => void
  /** It removes something. */
  readonly isBad?: boolean
}

export interface MoreProps {
  readonly label: string
  readonly items: readonly MoreItem[]
}

export const MORE_CLASS = 'button more'

/** Three dots. */
export const MoreIcon = () => (
  <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
    <path d="M5.500 12h.01M12 12h.01M18.500 12h.01" />
  </svg>
)

/** A menu of what is rarely done. Its code is loaded when it first opens. */
export function More(props: MoreProps) {
  const [isWanted, setWanted] = useState(false)
  const button = (
    <button type="button" className={MORE_CLASS} aria-label={props.label} aria-haspopup="menu" onClick={() => setWanted(true)}>
      <MoreIcon />
    </button>
  )
  return isWanted ? (
    <Suspense fallback={button}>
      <LazyMenu {...props} />
    </Suspense>
  ) : (
    button
  )
}
