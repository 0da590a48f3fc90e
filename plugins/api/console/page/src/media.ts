import { useSyncExternalStore } from 'react'

/** A hook that says whether the window fits a media query, and follows it. */
export function createMedia(text: string): () => boolean {
  const query = matchMedia(text)
  const follow = (listener: () => void) => {
    query.addEventListener('change', listener)
    return () => query.removeEventListener('change', listener)
  }
  return () => useSyncExternalStore(follow, () => query.matches)
}

/** The list or the selected item, not both. */
export const useNarrow = createMedia('(max-width: 860px)')
