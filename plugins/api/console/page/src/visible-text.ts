// Texts of models, tools, plugins and strangers are only text.

const LONGEST_CELL = 500
/** Control characters, such as those of terminals, and those that turn the direction of text around; not the joiners of letters. */
const HIDDEN = /[^\P{C}\n\t\u200C\u200D]/gu

/** A whole text with each hidden character as a sign of its own. */
export const shown = (text: string): string => text.replaceAll(HIDDEN, '\uFFFD')

/** The beginning of a text with each hidden character as a sign of its own. */
export const visible = (text: string, longest = LONGEST_CELL): string => {
  const part = text.length > longest ? `${text.slice(0, longest)}…` : text
  return shown(part)
}

/** A text without its hidden characters. */
export const plainText = (text: string): string => text.replaceAll(HIDDEN, '')
