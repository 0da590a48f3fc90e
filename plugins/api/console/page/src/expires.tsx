import { useEffect, useState } from 'react'

const TICK_MS = 1_000

/** In seconds while they matter, so that a reader sees them pass. */
function leftOf(seconds: number): string {
  if (seconds < 120) return `Expires in ${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `Expires in ${minutes} min` : `Expires in ${Math.round(minutes / 60)} h`
}

/** How long a question can be answered. A line of its own, which moves nothing; screen readers say it when they reach it. */
export function Expires({ at }: { readonly at: string }) {
  const [now, setNow] = useState(Date.now)
  const until = Date.parse(at)
  const isOver = now >= until
  useEffect(() => {
    if (isOver) return undefined
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [isOver])
  return (
    <p className="muted small expires" aria-live="off">
      <time dateTime={at}>{isOver ? 'The time to answer is over.' : leftOf(Math.ceil((until - now) / 1_000))}</time>
    </p>
  )
}
