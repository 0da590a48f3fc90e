/** Makes a thing of a text once and keeps it ready; with so many kept all are made anew. What cannot be made is tried again. */
export function kept<T>(most: number, make: (text: string) => T): (text: string) => T {
  const ready = new Map<string, T>()
  return text => {
    const there = ready.get(text)
    if (there !== undefined) return there
    const made = make(text)
    if (ready.size >= most) ready.clear()
    ready.set(text, made)
    return made
  }
}
