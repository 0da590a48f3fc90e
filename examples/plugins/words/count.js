/** How many words a text has. @type {(text: string) => number} */
export const countWords = text => text.split(/\s+/).filter(word => word !== '').length
