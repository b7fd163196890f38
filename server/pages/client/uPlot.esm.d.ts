// The chart library as the pages find it: server/pages/pages.ts serves it under this name.
export { default } from 'uplot'
