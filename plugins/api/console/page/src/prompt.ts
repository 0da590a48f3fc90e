import { createValue } from './value.ts'

/** What stands in the field for the next message of the playground. */
export const prompt = createValue('')

/** Adds a text, and keeps what the reader has written. */
export const addToPrompt = (text: string): void => {
  const written = prompt.get()
  prompt.set(written.trim() === '' ? text : `${written}\n\n${text}`)
}
