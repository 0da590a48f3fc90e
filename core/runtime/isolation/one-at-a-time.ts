/** Work of which one runs at a time: whoever asks while it runs gets the next one, which is the same for all of them. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = () => {
    running = work().finally(() => (running = undefined))
    return running
  }
  const after = async (one: Promise<void>) => {
    await one.catch(() => {}) // whoever asked for it is told
    next = undefined
    await begin()
  }
  return () => (running ? (next ??= after(running)) : begin())
}
