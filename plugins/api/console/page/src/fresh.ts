import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { onEvents, type ServerEvent } from './feed.ts'

/** What is shown follows the events, at most so often. */
const FRESHEN_MS = 1_000

interface Freshening {
  readonly key: QueryKey
  /** The events after which the server can answer otherwise. Default: all. */
  readonly isAbout?: (event: ServerEvent) => boolean
  readonly everyMs?: number
}

/** Reads queries again after events, not by time: an idle page asks nothing. */
export function useFreshening({ key, isAbout, everyMs = FRESHEN_MS }: Freshening): void {
  const queries = useQueryClient()
  const asked = useRef({ key, isAbout })
  asked.current = { key, isAbout }
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = onEvents(events => {
      if (timer !== undefined || !events.some(event => asked.current.isAbout?.(event) ?? true)) return
      timer = setTimeout(() => {
        timer = undefined
        void queries.invalidateQueries({ queryKey: asked.current.key })
      }, everyMs)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [queries, everyMs])
}
