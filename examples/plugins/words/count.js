/** Counts the words of a text. @type {(text: string) => number} */
export const countWords = text => text.split(/\s+/).filter(word => word !== '').length
